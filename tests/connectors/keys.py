"""Keys of states, which nobody but the tests uses."""

KEY = "3c9f1d2a7be84056f1a2c7d98e0b6435"
OTHER = "a7e40c5b19d28f63e1b94d07c8523fa6"
