# What the package's configuration has in place of the sample's.
s,^listen = .*,listen = {"*:80"},
s,^access_log = .*,access_log = "/var/log/pagewise/access.log",
s,^#user = .*,user = "pagewise",
s,^\(	root = \)"welcome",\1"/usr/share/pagewise/welcome",
