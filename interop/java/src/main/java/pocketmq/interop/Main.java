package pocketmq.interop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Plays scenarios against a name server: {@code --namesrv HOST:PORT --run NAME [--parallel N] SCENARIO...}; {@code --list}
 * prints their names. One JSON line per scenario on standard output; exit code 0 when all went well.
 */
public final class Main {
    private static final int SCENARIO_SECONDS = 120;

    private Main() {}

    static Map<String, Scenario> scenarios() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Sending.register(all);
        Consuming.register(all);
        Sharing.register(all);
        Retrying.register(all);
        Ordering.register(all);
        Pulling.register(all);
        Transacting.register(all);
        Administering.register(all);
        return all;
    }

    public static void main(String[] arguments) throws Exception {
        String nameServer = "127.0.0.1:9876";
        String run = "run" + System.currentTimeMillis();
        int parallel = 1;
        List<String> names = new ArrayList<>();
        for (int i = 0; i < arguments.length; i++) {
            switch (arguments[i]) {
                case "--namesrv": nameServer = arguments[++i]; break;
                case "--run": run = arguments[++i]; break;
                case "--parallel": parallel = Integer.parseInt(arguments[++i]); break;
                case "--list": scenarios().keySet().forEach(System.out::println); return;
                default: names.add(arguments[i]);
            }
        }
        Path home = Files.createTempDirectory("interop");
        System.setProperty("rocketmq.client.localOffsetStoreDir", home.resolve("offsets").toString());
        Scenario special = names.size() == 1 ? special(names.get(0)) : null;
        boolean good = special != null ? report(nameServer, run, "special", special) : playAll(nameServer, run, parallel, names);
        System.out.flush();
        Runtime.getRuntime().halt(good ? 0 : 1); // the clients leave threads behind that would hold up an orderly exit
    }

    /** What only a driver asks for, since it needs something done to the server meanwhile; null when the name is none of these. */
    private static Scenario special(String name) {
        switch (name) {
            case "restart": return Restarting::play;
            case "store-fill": return StoreFill::play;
            case "store-dump": return StoreDump::play;
            case "store-pending": return StoreFill::pending;
            case "store-await-pending": return StoreFill::awaitPending;
            default: return null;
        }
    }

    private static boolean playAll(String nameServer, String run, int parallel, List<String> names) throws Exception {
        Map<String, Scenario> all = scenarios();
        if (names.isEmpty()) {
            names = new ArrayList<>(all.keySet());
        }
        ExecutorService players = Executors.newFixedThreadPool(parallel);
        List<Future<Boolean>> results = new ArrayList<>();
        for (String name : names) {
            Scenario scenario = all.get(name);
            if (scenario == null) {
                System.err.println("there is no scenario " + name + "; --list shows them");
                return false;
            }
            results.add(players.submit(() -> report(nameServer, run, name, scenario)));
        }
        boolean good = true;
        for (Future<Boolean> result : results) {
            good &= result.get();
        }
        return good;
    }

    /** Plays one scenario with a limit on its time, and prints how it went. */
    private static boolean report(String nameServer, String run, String name, Scenario scenario) {
        long begin = System.nanoTime();
        ExecutorService player = Executors.newSingleThreadExecutor();
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("scenario", name);
        try (Session session = new Session(nameServer, run, name)) {
            Future<String> played = player.submit(() -> scenario.play(session));
            try {
                line.put("detail", played.get(SCENARIO_SECONDS, TimeUnit.SECONDS));
                line.put("ok", true);
            } catch (TimeoutException e) {
                played.cancel(true);
                line.put("ok", false);
                line.put("detail", "not over within " + SCENARIO_SECONDS + " s");
            } catch (ExecutionException e) {
                Throwable cause = e.getCause();
                line.put("ok", false);
                line.put("detail", cause instanceof Check.Failure ? cause.getMessage() : describe(cause));
            }
        } catch (InterruptedException e) {
            line.put("ok", false);
            line.put("detail", "interrupted");
        }
        player.shutdownNow();
        line.put("seconds", Math.round((System.nanoTime() - begin) / 1e8) / 10.0);
        synchronized (System.out) {
            System.out.println(Json.of(line));
            System.out.flush();
        }
        return Boolean.TRUE.equals(line.get("ok"));
    }

    private static String describe(Throwable error) {
        StringBuilder text = new StringBuilder(error.toString());
        for (StackTraceElement element : error.getStackTrace()) {
            if (element.getClassName().startsWith("pocketmq.")) {
                text.append(" at ").append(element.getFileName()).append(':').append(element.getLineNumber());
                break;
            }
        }
        return text.toString();
    }
}
