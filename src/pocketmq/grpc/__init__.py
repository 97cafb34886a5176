"""The gRPC endpoint: procedures of the API v2 over the services of a broker, and the port that carries them."""
