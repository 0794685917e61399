// One `go build`, with a line now and then that says how far it is: the first one on a machine takes minutes.

import { spawn } from 'node:child_process'

/** Without output for this long, people take a build for hung. */
const PROGRESS_MS = 15_000
/** A line of `go build -v`: the import path of a package that is being compiled. */
const PACKAGE = /^[\w.-]+(\/[\w.~-]+)*$/
const DOWNLOAD = /^go: downloading /
const KEPT_CHARACTERS = 4000

/**
 * Builds in `cwd`. `say` gets a line at the start, one every `progressMs` (default 15 s), and one at the end, each beginning with
 * `label`. Resolves with the last lines that Go printed, or '' on success.
 */
export function goBuild(
  args: readonly string[],
  cwd: string,
  label: string,
  say: (line: string) => void,
  progressMs: number = PROGRESS_MS,
): Promise<string> {
  return new Promise((resolve) => {
    const begun = performance.now()
    const elapsed = (): string => elapsedText(performance.now() - begun)
    const progress = new BuildOutput()
    say(`${label} ...`)
    // GOWORK: a go.work in a parent folder must not change what is built.
    const env = { ...process.env, GOWORK: 'off' }
    const go = spawn('go', ['build', '-v', ...args], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
    const kill = (): boolean => go.kill('SIGKILL')
    process.on('exit', kill)
    const timer = setInterval(() => say(`${label}: ${progress.text}, ${elapsed()}`), progressMs)
    go.stderr.setEncoding('utf8').on('data', (text: string) => progress.add(text))
    go.on('error', (error) => progress.add(`${error.message}\n`))
    go.on('close', (code) => {
      clearInterval(timer)
      process.off('exit', kill)
      if (code === 0) say(`${label}: done in ${elapsed()}`)
      resolve(code === 0 ? '' : progress.rest.trim() || `go ended with code ${code}`)
    })
  })
}

/** What Go prints: packages and downloads are counted, everything else is kept. */
class BuildOutput {
  #line = ''
  #packages = 0
  #downloads = 0
  /** The end of what is neither. */
  rest: string = ''

  add(text: string): void {
    const lines = (this.#line + text).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) {
      if (DOWNLOAD.test(line)) this.#downloads++
      else if (PACKAGE.test(line)) this.#packages++
      else this.rest = `${this.rest}${line}\n`.slice(-KEPT_CHARACTERS)
    }
  }

  get text(): string {
    const downloads = this.#downloads === 0 ? '' : `${this.#downloads} modules downloaded, `
    return `${downloads}${this.#packages} packages compiled`
  }
}

/** `45s`, `2m05s`. */
export function elapsedText(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const rest = seconds % 60
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${rest < 10 ? '0' : ''}${rest}s`
}
