"""The only room with sockets and an event loop."""
