# A node serves already, and takes its whole configuration when it is started again.
cat >/etc/pagewise/pagewise.conf <<'EOF'
user = "pagewise"
listen = {"*:80"}
admin = {"/run/pagewise/admin"}
ready = "/ready"
popular = 32
site "www" { root = "/srv/www" }
EOF
systemctl start pagewise
sed -i 's,^admin = .*,admin = {"127.0.0.1:9180"\, "/run/pagewise/admin"},' /etc/pagewise/pagewise.conf
