// What a run measures: the commit, and the programs with their versions and the TLS libraries that they run on: encryption is most of what
// a proxy does.

import { execFileSync } from 'node:child_process'
import process from 'node:process'

/** For example "Node 24.20.0 (OpenSSL 3.5.7), HAProxy 2.6.12-1+deb12u4 (OpenSSL 3.0.19)". Throws where HAProxy is missing. */
export function versions(): string {
  const output = execFileSync('haproxy', ['-vv'], { encoding: 'utf8' })
  const haproxy = /^HAProxy version (\S+)/m.exec(output)?.[1]
  // What it was built with may be older than what is loaded.
  const library = /^Running on OpenSSL version : OpenSSL (\S+)/m.exec(output)?.[1]
  const nghttpx = nghttpxVersion()
  return (
    `Node ${process.versions.node} (OpenSSL ${process.versions.openssl}), HAProxy ${haproxy} (OpenSSL ${library})` +
    (nghttpx === undefined ? '' : `, nghttpx ${nghttpx}`)
  )
}

/** Undefined where it is not installed. */
export function nghttpxVersion(): string | undefined {
  try {
    return /nghttp2\/(\S+)/.exec(execFileSync('nghttpx', ['--version'], { encoding: 'utf8' }))?.[1]
  } catch {
    return undefined
  }
}

/** The commit of a checkout, e.g. "2bb923c3" or "2bb923c3 with changes": a table is of the commit that it names. */
export function commitOf(root: string): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') !== ''
    return `${git('rev-parse', '--short=8', 'HEAD')}${changed ? ' with changes' : ''}`
  } catch {
    return 'no commit'
  }
}
