package pocketmq.interop;

import java.util.Objects;
import java.util.concurrent.Callable;

/** What a scenario expects; a broken expectation ends it with a sentence. */
final class Check {
    private Check() {}

    /** Thrown when the server did not do what the scenario expects. */
    static final class Failure extends RuntimeException {
        Failure(String message) {
            super(message);
        }
    }

    static void that(boolean holds, String message) {
        if (!holds) {
            throw new Failure(message);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        that(Objects.equals(expected, actual), what + ": expected " + expected + ", got " + actual);
    }

    /** Waits until the condition holds; an exception in it counts as "not yet" and is quoted when time is over. */
    static void eventually(String what, int seconds, Callable<Boolean> condition) throws InterruptedException {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        Exception last = null;
        while (true) {
            try {
                if (condition.call()) {
                    return;
                }
                last = null;
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) {
                last = e;
            }
            if (System.nanoTime() > end) {
                throw new Failure("not within " + seconds + " s: " + what + (last == null ? "" : " (last: " + last + ")"));
            }
            Thread.sleep(50);
        }
    }
}
