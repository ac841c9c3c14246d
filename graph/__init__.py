"""The graph: wiring, runtime and command line."""
