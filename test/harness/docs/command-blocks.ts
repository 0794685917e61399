// The command blocks of a page of the documentation, in the order a reader meets them, and a shell in which a reader types them.
//
// A block runs as printed, unless a comment right before it, which no reader sees, says otherwise:
//   <!-- run: 192.0.2.10:8443=GATEWAY, /backup=BACKUP -->   with stand-ins (the test's table) for placeholders
//   <!-- run: as alice -->                                  by another user, in another shell
//   <!-- run: apart -->                                     its gateways have a data directory of their own, and end with it
//   <!-- run: not here: REASON -->                          not at all

import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { endWithThisProcess, guarded } from '../process.ts'
import { MAIN } from '../program.ts'
import { waitFor } from '../wait.ts'

export interface CommandBlock {
  /** `README.md:59` */
  readonly place: string
  readonly text: string
  /** Placeholder -> name of what stands in for it. */
  readonly standIns: ReadonlyMap<string, string>
  /** '' = the page's own reader. */
  readonly user: string
  readonly apart: boolean
  /** Why it does not run; '' = it does. */
  readonly skipped: string
}

const ANNOTATION = /^\s*<!-- run: (.+) -->$/

/** @throws for an annotation that is not understood, or that stands before no command block */
export function commandBlocks(page: string, text: string): CommandBlock[] {
  const lines = text.split('\n')
  const blocks: CommandBlock[] = []
  let annotation = ''
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? ''
    const noted = ANNOTATION.exec(line)?.[1]
    const fence = /^( *)```sh$/.exec(line)
    if (noted !== undefined) annotation = noted
    if (fence !== null) {
      const indent = fence[1] ?? ''
      const end = lines.indexOf(`${indent}\`\`\``, i + 1)
      const body = lines.slice(i + 1, end).map((one) => one.slice(indent.length))
      blocks.push(annotated(`${page}:${i + 1}`, body.join('\n'), annotation))
      annotation = ''
      i = end
    } else if (annotation !== '' && noted === undefined && line.trim() !== '') {
      throw new Error(`${page}:${i + 1}: a run annotation stands before no command block`)
    }
  }
  return blocks
}

function annotated(place: string, text: string, annotation: string): CommandBlock {
  const [, skipped = ''] = /^not here: (.+)$/.exec(annotation) ?? []
  const standIns = new Map<string, string>()
  let user = ''
  let apart = false
  const parts = skipped === '' ? annotation.split(',').map((part) => part.trim()) : []
  for (const part of parts.filter((one) => one !== '')) {
    const [, who = ''] = /^as (\w+)$/.exec(part) ?? []
    const [, placeholder = '', name = ''] = /^(\S+)=([A-Z]+)$/.exec(part) ?? []
    if (who !== '') user = who
    else if (part === 'apart') apart = true
    else if (placeholder === '') throw new Error(`${place}: ${part} is not understood`)
    else if (text.includes(placeholder)) standIns.set(placeholder, name)
    else throw new Error(`${place}: the block has no ${placeholder}`)
  }
  return { place, text, standIns, user, apart, skipped }
}

export interface ReaderOptions {
  /** Where the reader stands: a checkout, or what looks like one. */
  readonly cwd: string
  readonly home: string
  readonly env: Readonly<Record<string, string>>
}

/** A bash that keeps its variables from block to block, and ends at the first command that fails. */
export class ReaderShell {
  readonly #dir: string
  readonly #log: string
  readonly #child
  #blocks = 0
  #exit: number | undefined

  constructor({ cwd, home, env }: ReaderOptions) {
    this.#dir = join(home, `shell-${Math.random().toString(36).slice(2)}`)
    mkdirSync(this.#dir, { recursive: true })
    this.#log = join(this.#dir, 'output')
    writeFileSync(this.#log, '')
    const [command, args] = guarded('bash', ['--noprofile', '--norc'])
    this.#child = spawn(command, args, { cwd, env: { ...env, HOME: home }, stdio: ['pipe', 'ignore', 'ignore'] })
    endWithThisProcess(this.#child)
    this.#child.on('exit', (code) => {
      this.#exit = code ?? -1
    })
    this.#child.stdin.write(`exec >> ${this.#log} 2>&1\nset -eo pipefail\n`)
  }

  /** Resolves with what the block printed. @throws when a command of it fails, with the end of its output */
  async run(text: string, timeoutMs = 120_000): Promise<string> {
    if (this.#exit !== undefined) throw new Error(`the shell ended at block ${this.#blocks}, which failed`)
    const file = join(this.#dir, `block-${++this.#blocks}.sh`)
    writeFileSync(file, `${text}\n`)
    const before = this.#output().length
    const end = `block ${this.#blocks} has ended`
    this.#child.stdin.write(`. ${file} < /dev/null\necho; echo '${end}'\n`)
    const output = (): string => this.#output().slice(before)
    const over = (): boolean => output().includes(end) || this.#exit !== undefined
    await waitFor(`the end of:\n${text}\n`, over, { timeoutMs }).catch((error: unknown) => {
      throw new Error(`${String(error)}, which printed:\n${output().slice(-3000)}`)
    })
    // What it printed comes first: the sum of a run shows the beginning.
    if (!output().includes(end))
      throw new Error(
        `${lastLine(output())}\nwith which this failed (${this.#exit}):\n${text}\nAll of its output:\n${output().slice(-3000)}`,
      )
    return output().replace(`\n${end}\n`, '')
  }

  #output(): string {
    return readFileSync(this.#log, 'utf8')
  }

  end(): void {
    this.#child.stdin.end()
    this.#child.kill()
  }
}

/**
 * A `portcullis` that a reader finds in bin/ and on the PATH. `serve`, which a reader leaves running in another window, returns when it
 * is ready, and first ends the one before of the same directory; its ports are those of DOCS_PORT and DOCS_CONTROL_PORT. Everything else
 * is the program itself.
 */
export function portcullisCommand(pidFile: string): string {
  const run = `${process.execPath} ${MAIN}`
  return `#!/bin/bash
[ "$1" = serve ] || exec ${run} "$@"
end() { kill "$1" 2> /dev/null; while kill -0 "$1" 2> /dev/null; do sleep 0.1; done; }
log=$(mktemp -p "$HOME")
if [ -n "$DOCS_APART" ]; then
  export PORTCULLIS_DATA_DIR=$(mktemp -d -p "$HOME") PORTCULLIS_LISTEN=127.0.0.1:0 PORTCULLIS_CONTROL_LISTEN=127.0.0.1:0
else
  [ -s ${pidFile} ] && end "$(cat ${pidFile})"
  export PORTCULLIS_LISTEN=0.0.0.0:$DOCS_PORT PORTCULLIS_CONTROL_LISTEN=127.0.0.1:$DOCS_CONTROL_PORT
fi
# Where readers have clusters, there are clusters on this machine.
export PORTCULLIS_ALLOW_LOCAL_SERVERS=127.0.0.1
export PORTCULLIS_ADMIN_LISTEN=127.0.0.1:0 PORTCULLIS_THREADS=2 PORTCULLIS_DRAIN_TIMEOUT=1s
setsid ${run} "\${@//0.0.0.0:8443/0.0.0.0:$DOCS_PORT}" > "$log" 2>&1 < /dev/null &
pid=$!
[ -n "$DOCS_APART" ] || echo $pid > ${pidFile}
until grep -q 'portcullis is ready' "$log"; do
  kill -0 $pid 2> /dev/null || { cat "$log"; exit 1; }
  sleep 0.1
done
grep 'portcullis is ready' "$log"
[ -z "$DOCS_APART" ] || end $pid
`
}

function lastLine(output: string): string {
  return output.trimEnd().split('\n').at(-1) ?? ''
}
