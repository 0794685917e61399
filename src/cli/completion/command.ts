// `portcullis completion bash
// zsh`, and `portcullis __complete`, which its scripts call.

import type { CommandUnknownOpts } from 'commander'
import { DEGRADE_MODES } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { createKubeClient } from '../../kube/io/client.ts'
import { metadataOf } from '../client/control-plane.ts'
import { completionsOf, completionText } from './complete.ts'

/** The user is waiting at the keyboard. */
const TIMEOUT_MS = 2000

/** The exit code: always 0, since a shell can't show errors here. */
export async function completeWords(
  program: CommandUnknownOpts,
  words: readonly string[],
  out: (text: string) => void,
): Promise<number> {
  out(completionText(await completionsOf(program, words, { values: { '--mode': DEGRADE_MODES }, clusters })))
  return 0
}

/** @returns the exit code */
export function completionScript(shell: 'bash' | 'zsh', out: (text: string) => void): number {
  out(SCRIPTS[shell])
  return 0
}

async function clusters(flags: ReadonlyMap<string, string>): Promise<readonly string[]> {
  try {
    const context = flags.get('--context')
    const client = createKubeClient({
      kubeconfigFile: flags.get('--kubeconfig') ?? '',
      log: SILENT,
      timeoutMs: TIMEOUT_MS,
      ...(context !== undefined && { context }),
    })
    try {
      const { items } = await client.list(UPSTREAM_CLUSTERS, '')
      return items.map((item) => metadataOf(item).name)
    } finally {
      await client.close()
    }
  } catch {
    // Without a kubeconfig, a right or an answer there are no names.
    return []
  }
}

/** `source <(portcullis completion SHELL)`: the scripts ask the program, and show its answer. */
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
