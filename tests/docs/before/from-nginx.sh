# Another server has port 80 so far; here it is this one, with the configuration of its package.
systemctl start pagewise
