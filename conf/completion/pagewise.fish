# Completion of pagewise for fish: a file of /usr/share/fish/vendor_completions.d.
# The options are those of `pagewise --help` and of its commands; tests/http/test_completion.py
# compares.

set -l commands precompress digest sign assign drain undrain
complete -c pagewise -f
complete -c pagewise -n __fish_is_first_arg -a "$commands"

set -l server "not __fish_seen_subcommand_from $commands"
complete -c pagewise -n $server -s c -l config -r -F -d "read this configuration file"
complete -c pagewise -n $server -s t -l test -d "check the configuration, print what it serves"
complete -c pagewise -n $server -s T -l dump -d "check the configuration, print all of it"
complete -c pagewise -n $server -s V -l version -d "print versions"
complete -c pagewise -n $server -s h -l help -d "print help, or that of a key"
complete -c pagewise -n "$server; and __fish_prev_arg_in -h --help" \
    -a "(pagewise --keys 2>/dev/null | string replace -rf '^#*(\w+) = .*' '\$1')" -d "key"
complete -c pagewise -n $server -l keys -d "print all keys of the configuration file"
complete -c pagewise -n $server -l root -x -a "(__fish_complete_directories)" -d "serve this directory"
complete -c pagewise -n $server -l listen -x -d "address to listen on"
complete -c pagewise -n $server -l workers -x -a auto -d "worker threads"
complete -c pagewise -n $server -l threads -x -d "prefetch threads for each device"
complete -c pagewise -n $server -l access-log -r -F -a "off -" -d "file of the access log"
complete -c pagewise -n $server -l log-format -x -a "combined json" -d "format of the access log"
complete -c pagewise -n $server -l stall-log -x -d "log event-loop iterations this long"
complete -c pagewise -n $server -l busy-poll -x -d "poll for events before sleeping"
complete -c pagewise -n $server -l user -x -a "(__fish_complete_users)" -d "user to run as"
complete -c pagewise -n $server -l group -x -a "(__fish_complete_groups)" -d "group to run as"
complete -c pagewise -n $server -l sandbox -x -a "on off" -d "drop every privilege that serving does not need"
complete -c pagewise -n $server -l admin -r -F -a off -d "address of the metrics"
complete -c pagewise -n $server -l agent -x -a off -d "address to listen on for HAProxy's agent-check"
complete -c pagewise -n $server -l hot-set -x -d "memory of each worker for the response cache"
complete -c pagewise -n $server -l send-path -x -a "auto nodiskio native uring ring splice mlock aio pool blocking copy" -d "method of sending files"
complete -c pagewise -n $server -l readahead -x -a "auto 0" -d "amount of data to prefetch from disk at once"
complete -c pagewise -n $server -l cache -x -a "keep drop auto" -d "what becomes of fetched pages"
complete -c pagewise -n $server -l autoindex -d "list directories without an index"

set -l tool "__fish_seen_subcommand_from precompress digest"
complete -c pagewise -n $tool -a "(__fish_complete_directories)"
complete -c pagewise -n $tool -s j -l jobs -x -d "files to process in parallel"
complete -c pagewise -n $tool -s f -l force -d "replace even what is current"
complete -c pagewise -n $tool -l dotfiles -d "include names that begin with a dot"
complete -c pagewise -n $tool -s q -l quiet -d "print errors only"
complete -c pagewise -n $tool -s h -l help -d "print help"

set -l precompress "__fish_seen_subcommand_from precompress"
complete -c pagewise -n $precompress -s c -l codings -x -a "zst br gz" -d "content codings to write"
complete -c pagewise -n $precompress -s l -l level -x -d "levels of codings"
complete -c pagewise -n $precompress -s m -l min-size -x -d "skip smaller files"
complete -c pagewise -n $precompress -s s -l suffixes -x -d "select files by suffix"

complete -c pagewise -n "__fish_seen_subcommand_from digest" -s c -l check -d "compare the files with their digests"

set -l sign "__fish_seen_subcommand_from sign"
complete -c pagewise -n $sign -l key -r -F -d "key file; the first key signs"
complete -c pagewise -n $sign -l expires -x -d "how long the link is valid"
complete -c pagewise -n $sign -l client -x -d "valid only for this address or block"

set -l assign "__fish_seen_subcommand_from assign"
complete -c pagewise -n $assign -a "(__fish_complete_directories)"
complete -c pagewise -n $assign -s d -l depth -x -d "keep directories of N levels together"
complete -c pagewise -n $assign -l add -x -d "print what moves if this node is added"
complete -c pagewise -n $assign -l ring -x -a "2.6 3.0" -d "hash ring of your HAProxy version"
complete -c pagewise -n $assign -l dotfiles -d "include names that begin with a dot"
complete -c pagewise -n $assign -s q -l quiet -d "do not print the sums"
complete -c pagewise -n $assign -s h -l help -d "print help"

set -l drain "__fish_seen_subcommand_from drain undrain"
complete -c pagewise -n $drain -F
complete -c pagewise -n $drain -s h -l help -d "print help"
