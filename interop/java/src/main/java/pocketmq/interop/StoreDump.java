package pocketmq.interop;

class StoreDump {
    static boolean print(String nameServer, String run, java.util.List<String> topics) throws Exception { return false; }
}
