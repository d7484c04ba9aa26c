# The nodes serve already.
cat >/etc/pagewise/pagewise.conf <<'END'
user = "pagewise"
listen = {"*:80"}
admin = {"127.0.0.1:8080", "/run/pagewise/admin"}
ready = "/ready"
popular = 32
site "www" { root = "/srv/www" }
END
systemctl start pagewise
