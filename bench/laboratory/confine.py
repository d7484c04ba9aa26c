"""Runs a command with what the laboratory leaves it: confine.py --help.

A program of its own, because Python should run nothing between fork and exec in a
process that has threads.
"""

import argparse
import os
import pwd
import resource

DESCRIPTORS = 65536  # enough for most scenarios; some servers make tables of them


def options():
    p = argparse.ArgumentParser(description="Runs a command, confined.")
    p.add_argument("--cgroup", action="append", default=[], metavar="DIR")
    p.add_argument("--core", type=int, help="the only one that it may use")
    p.add_argument("--user", help="that it runs as")
    p.add_argument("--descriptors", type=int, default=DESCRIPTORS,
                   help="that it may have, where the hard limit is not lower")
    p.add_argument("command", nargs=argparse.REMAINDER)
    return p.parse_args()


def main():
    args = options()
    for path in args.cgroup:
        with open(f"{path}/cgroup.procs", "w", encoding="ascii") as f:
            f.write("0")
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, args.descriptors), hard))
    if args.user:
        user = pwd.getpwnam(args.user)
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    os.execvp(args.command[0], args.command)


if __name__ == "__main__":
    main()
