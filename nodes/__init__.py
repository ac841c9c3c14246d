"""What happens: one module per node, and the engines beside them."""
