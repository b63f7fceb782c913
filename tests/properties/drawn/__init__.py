"""What random clusters are drawn from, one module for each kind of object."""
