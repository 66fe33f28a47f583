# Completion of lmart in bash. It is installed as share/bash-completion/completions/lmart;
# else: eval "$(lmart --completion bash)"
#
# lmart gets the line up to the cursor, and answers with what kind of words can stand there, then the words, one a line,
# each with a tab and its meaning.

_lmart() {
    local program=${1/#\~/$HOME} line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
    local whole=${line##*[[:space:]]} before word kind answer reply suffix
    local -a answers=()
    COMPREPLY=()
    while read -r answer; do
        answers+=("$answer")
    done < <(_LMART_COMPLETE=bash "$program" "$line" 2> /dev/null)
    [[ ${#answers[@]} -gt 0 ]] || return 0
    word=${answers[0]#* }
    kind=${answers[0]%% *}
    case $kind in
        files)
            # The rest of the first line: suffixes of the names that fit, with blanks between; none: all names.
            compopt -o filenames 2> /dev/null
            [[ $current == '=' ]] && current=
            current=${current#[\"\']}
            current=${current//\\/}
            for reply in $(compgen -f -- "$current"); do
                if [[ $kind == "$word" || -d ${reply/#\~/$HOME} ]]; then
                    COMPREPLY+=("$reply")
                    continue
                fi
                local IFS=' '
                for suffix in $word; do
                    [[ $reply == *"$suffix" ]] && COMPREPLY+=("$reply") && break
                done
                IFS=$'\n'
            done
            ;;
        words | parts)
            # bash has cut the word at @, = and : and replaces what stands behind the last of them, and an @ itself.
            [[ $kind == parts ]] && compopt -o nospace 2> /dev/null
            [[ $current == [@=:] ]] && current=
            before=${whole%"$current"}
            before=${before%@}
            for answer in "${answers[@]:1}"; do
                reply=${answer%%$'\t'*}
                [[ $reply == "$whole"* ]] && COMPREPLY+=("${reply#"$before"}")
            done
            ;;
    esac
}

complete -F _lmart lmart
