// The completion scripts of the shells: they ask the program, and show what it says.

/** `source <(portcullis completion SHELL)` */
export const SCRIPTS: Readonly<Record<'bash' | 'zsh', string>> = {
  bash: `# bash completion of portcullis: source <(portcullis completion bash)
_portcullis() {
  local answer line directive
  answer=$("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
  directive=\${answer##*$'\\n'}
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* || -z $line ]] || COMPREPLY+=("\${line%%$'\\t'*}")
  done <<<"$answer"
  if [[ \${#COMPREPLY[@]} -eq 0 && $directive == :0 ]]; then
    compopt -o default 2>/dev/null
  fi
}
complete -F _portcullis portcullis
`,
  zsh: `#compdef portcullis
# zsh completion of portcullis: source <(portcullis completion zsh)
_portcullis() {
  local answer line value
  local -a lines described
  answer=$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null) || return
  lines=("\${(@f)answer}")
  for line in "\${(@)lines[1,-2]}"; do
    value="\${line%%$'\\t'*}"
    if [[ $line == *$'\\t'* ]]; then
      described+=("\${value//:/\\\\:}:\${line#*$'\\t'}")
    else
      described+=("\${value//:/\\\\:}")
    fi
  done
  if (( \${#described} )); then
    _describe portcullis described
  elif [[ \${lines[-1]} == :0 ]]; then
    _files
  fi
}
compdef _portcullis portcullis
`,
}
