"""Put traces and event files on one clock, and find the first epoch in them."""
