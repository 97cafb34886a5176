"""The gRPC API v2: its messages, as text and as protobuf classes, and its codes. Needs the extra `grpc` when used."""
