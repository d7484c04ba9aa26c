"""HAProxy and its nodes: what `make fleet` and the tests of conf/haproxy use."""
