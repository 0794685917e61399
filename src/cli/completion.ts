// Completes a word of a command line from commander's own description of the commands. Shells call it by
// `portcullis __complete WORD... LAST`, in cobra's protocol, which kubectl uses with its plugins: lines of a value, a tab and a
// description, followed by a colon and a directive.

import type { CommandUnknownOpts, Option } from 'commander'
import { DEGRADE_MODES } from '../gateway/api/upstream-cluster/degrade-modes.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import { SILENT } from '../kit/api/ports.ts'
import { createKubeClient } from '../kube/io/client.ts'
import { metadataOf } from './client/control-plane.ts'

// `portcullis completion bash` and `zsh`, and `portcullis __complete`, which their scripts call.

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
const SCRIPTS: Readonly<Record<'bash' | 'zsh', string>> = {
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

interface Completions {
  /** Value -> description; '' = none. */
  readonly values: ReadonlyMap<string, string>
  /** File names are expected. */
  readonly files: boolean
}

interface CompletionSources {
  /** Flag -> its values, if the command also accepts other spellings and so declares no choices. */
  readonly values: Readonly<Record<string, readonly string[]>>
  /** Names of UpstreamClusters; [] if their API server doesn't answer. */
  clusters(flags: ReadonlyMap<string, string>): Promise<readonly string[]>
}

/** cobra's ShellCompDirective: default, the shell offers files; NoFileComp. */
const FILES = 0
const NO_FILES = 4
const NOTHING: Completions = { values: new Map(), files: false }

/** @param words the words after the name of the program; the last one is being completed */
export async function completionsOf(
  program: CommandUnknownOpts,
  words: readonly string[],
  sources: CompletionSources,
): Promise<Completions> {
  const last = words.at(-1) ?? ''
  const { command, pending, flags, position } = walk(program, words.slice(0, -1))
  if (pending !== undefined) return matching(last, await valuesOf(pending, flags, sources))
  const assigned = /^(--[^=]+)=(.*)$/s.exec(last)
  if (assigned !== null) {
    const [, flag = '', part = ''] = assigned
    const option = optionOf(command, flag)
    if (option === undefined) return NOTHING
    const { values, files } = matching(part, await valuesOf(option, flags, sources))
    return { values: new Map([...values].map(([value, what]) => [`${flag}=${value}`, what])), files }
  }
  if (last.startsWith('-')) return matching(last, { values: flagsOf(command), files: false })
  return matching(last, await positional(command, position, flags, sources))
}

/** The protocol's text. */
export function completionText({ values, files }: Completions): string {
  const lines = [...values].map(([value, what]) => (what === '' ? value : `${value}\t${oneLine(what)}`))
  return [...lines, `:${files ? FILES : NO_FILES}`, ''].join('\n')
}

interface Walked {
  readonly command: CommandUnknownOpts
  /** The flag whose value comes next. */
  readonly pending: Option | undefined
  readonly flags: ReadonlyMap<string, string>
  /** Number of arguments so far. */
  readonly position: number
}

function walk(program: CommandUnknownOpts, words: readonly string[]): Walked {
  let command = program
  let pending: Option | undefined
  let position = 0
  const flags = new Map<string, string>()
  for (const word of words) {
    if (pending !== undefined) {
      flags.set(pending.long ?? '', word)
      pending = undefined
    } else if (word.startsWith('-')) {
      const [flag = '', ...value] = word.split('=')
      const option = optionOf(command, flag)
      if (option === undefined || !takesValue(option)) continue
      if (value.length > 0) flags.set(option.long ?? '', value.join('='))
      else pending = option
    } else {
      const next = command.commands.find((one) => one.name() === word)
      if (next === undefined) position++
      else command = next
    }
  }
  return { command, pending, flags, position }
}

function optionOf(command: CommandUnknownOpts, flag: string): Option | undefined {
  return command.options.find(({ long, short }) => long === flag || short === flag)
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional
}

function flagsOf(command: CommandUnknownOpts): ReadonlyMap<string, string> {
  const shown = command.options.filter(({ hidden }) => !hidden)
  return new Map([
    ...shown.map((option) => [option.long ?? '', option.description] as const),
    ['--help', 'display help'],
  ])
}

async function valuesOf(
  option: Option,
  flags: ReadonlyMap<string, string>,
  sources: CompletionSources,
): Promise<Completions> {
  const known = option.argChoices ?? sources.values[option.long ?? '']
  if (known !== undefined) return { values: plain(known), files: false }
  if (option.long === '--cluster') return { values: plain(await sources.clusters(flags)), files: false }
  return { values: new Map(), files: /<(?:file|dir)>/.test(option.flags) }
}

async function positional(
  command: CommandUnknownOpts,
  position: number,
  flags: ReadonlyMap<string, string>,
  sources: CompletionSources,
): Promise<Completions> {
  const commands = command.commands.filter((one) => !Reflect.get(one, '_hidden'))
  if (commands.length > 0) {
    return { values: new Map(commands.map((one) => [one.name(), one.description()])), files: false }
  }
  const all = command.registeredArguments
  const argument = all[position] ?? (all.at(-1)?.variadic === true ? all.at(-1) : undefined)
  if (argument === undefined) return NOTHING
  if (argument.argChoices !== undefined) return { values: plain(argument.argChoices), files: false }
  const name = argument.name()
  if (/^clusters?$/.test(name)) return { values: plain(await sources.clusters(flags)), files: false }
  return { values: new Map(), files: /^(?:file|dir)$/.test(name) }
}

function plain(values: readonly string[]): ReadonlyMap<string, string> {
  return new Map(values.map((value) => [value, '']))
}

function matching(part: string, { values, files }: Completions): Completions {
  return { values: new Map([...values].filter(([value]) => value.startsWith(part))), files }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}
