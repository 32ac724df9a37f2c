"""`headrace log`: look into log files and check them."""
