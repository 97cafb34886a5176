package pocketmq.interop;

/** One story that a client and a server play; returns a sentence about what happened, throws when it went wrong. */
@FunctionalInterface
interface Scenario {
    String play(Session session) throws Exception;
}
