package pocketmq.interop;

class StoreFill {
    static String play(Session session) throws Exception { return ""; }
}
