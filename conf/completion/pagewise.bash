# Completion of pagewise for bash: sourced from /usr/share/bash-completion/completions/pagewise.
# The options are those of `pagewise --help` and of its commands; tests/http/test_completion.py
# compares.

_pagewise_words()
{
	COMPREPLY=($(compgen -W "$1" -- "$cur"))
}

_pagewise_files()
{
	compopt -o filenames 2>/dev/null
	COMPREPLY=($(compgen "$@" -- "$cur"))
}

# The value of the option before the cursor; 1: it takes none.
_pagewise_value()
{
	case $command$prev in
	-c | --config | sign--key) _pagewise_files -f ;;
	-h | --help)
		[[ $cur != -* ]] || return 1
		_pagewise_words "$("${COMP_WORDS[0]}" --keys 2>/dev/null | sed -n 's/^#*\([a-z0-9_]*\) = .*/\1/p')" ;;
	--root) _pagewise_files -d ;;
	--access-log | --admin | --agent) _pagewise_words off; [[ ${COMPREPLY-} ]] || _pagewise_files -f ;;
	--workers) _pagewise_words auto ;;
	--log-format) _pagewise_words "combined json" ;;
	--user) COMPREPLY=($(compgen -u -- "$cur")) ;;
	--group) COMPREPLY=($(compgen -g -- "$cur")) ;;
	--sandbox) _pagewise_words "on off" ;;
	--send-path) _pagewise_words "auto nodiskio native uring ring splice mlock aio pool blocking copy" ;;
	--readahead) _pagewise_words "auto 0" ;;
	--cache) _pagewise_words "keep drop auto" ;;
	--listen) _pagewise_words "127.0.0.1:8080 *:8080 unix:" ;;
	--threads | --stall-log | --busy-poll | --hot-set) COMPREPLY=() ;;
	precompress-c | precompress--codings) _pagewise_words "zst br gz" ;;
	precompress-[lmsj] | precompress--level | precompress--min-size | precompress--suffixes | \
	    precompress--jobs | digest-j | digest--jobs | sign--expires | sign--client | \
	    assign-d | assign--depth | assign--add) COMPREPLY=() ;;
	assign--ring) _pagewise_words "2.6 3.0" ;;
	*) return 1 ;;
	esac
}

_pagewise()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=

	COMPREPLY=()
	case ${COMP_WORDS[1]-} in
	precompress | digest | sign | assign | drain | undrain) [[ $COMP_CWORD -eq 1 ]] || command=${COMP_WORDS[1]} ;;
	esac
	_pagewise_value && return
	case $command:$cur in
	precompress:-*)
		_pagewise_words "-c --codings -l --level -m --min-size -s --suffixes -j --jobs
		    -f --force --dotfiles -q --quiet -h --help" ;;
	digest:-*)
		_pagewise_words "-c --check -j --jobs -f --force --dotfiles -q --quiet -h --help" ;;
	assign:-*)
		_pagewise_words "-d --depth --add --ring --dotfiles -q --quiet -h --help" ;;
	drain:-* | undrain:-*)
		_pagewise_words "-h --help" ;;
	sign:-*)
		_pagewise_words "--key --expires --client" ;;
	precompress:* | digest:* | assign:*)
		_pagewise_files -d ;;
	drain:* | undrain:*)
		_pagewise_files -f ;;
	:-*)
		_pagewise_words "-c --config -t --test -T --dump -V --version -h --help --keys --root
		    --listen --workers --threads --access-log --log-format --stall-log --busy-poll
		    --user --group --sandbox --admin --agent --hot-set --send-path --readahead --cache
		    --autoindex" ;;
	:*)
		[[ $COMP_CWORD -ne 1 ]] || _pagewise_words "precompress digest sign assign drain undrain" ;;
	esac
}

complete -F _pagewise pagewise
