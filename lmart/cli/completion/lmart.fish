# Completion of lmart in fish. It is installed as share/fish/vendor_completions.d/lmart.fish;
# else: lmart --completion fish | source
#
# lmart gets the words up to the cursor, and answers with what kind of words can stand there, then the words, one a
# line, each with a tab and its meaning.

function __lmart_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # Of a word in an open quote the first character; in any other, what escapes the characters.
    if string match -qr '^[\'"]' -- $current
        set current (string sub -s 2 -- $current)
    else
        set current (string unescape -- $current)
    end
    set -l program (string replace -r '^~' -- $HOME $words[1])
    set -l answers (_LMART_COMPLETE=fish $program $words[2..-1] "$current" 2> /dev/null)
    set -l kind (string split ' ' -- $answers[1])
    switch "$kind[1]"
        case files
            # The rest of the first line: suffixes of the names that fit; none: all names.
            set -l before (string match -r '^--[a-z-]+=' -- $current)
            set -l typed (string replace -r '^--[a-z-]+=' '' -- $current)
            for path in (__fish_complete_path "$typed")
                set -l name (string split -m 1 \t -- $path)[1]
                if test (count $kind) -eq 1; or string match -q '*/' -- $name
                    echo "$before$path"
                    continue
                end
                for suffix in $kind[2..-1]
                    if string match -q "*$suffix" -- $name
                        echo "$before$path"
                        break
                    end
                end
            end
        case words parts
            printf '%s\n' $answers[2..-1]
    end
end

complete -c lmart -e
complete -c lmart -f -a '(__lmart_complete)'
