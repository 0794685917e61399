// The browser of this machine, and whether there is one.

import { spawn } from 'node:child_process'
import process from 'node:process'

/** A session on another machine has no browser in front of its user. */
export function hasBrowser(env: NodeJS.ProcessEnv = process.env, platform: string = process.platform): boolean {
  if ((env['SSH_CONNECTION'] ?? '') !== '' || (env['SSH_TTY'] ?? '') !== '') return false
  if (platform === 'darwin' || platform === 'win32') return true
  return ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME'].some((name) => (env[name] ?? '') !== '')
}

/** The program that opens a URL, with its arguments; the URL is the last one. */
export function openerOf(command: string, platform: string = process.platform): readonly [string, ...string[]] {
  if (command !== '') return [command]
  if (platform === 'darwin') return ['open']
  // Not `start`, which is one of the shell, and takes `&` in a URL for its own.
  if (platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  return ['xdg-open']
}

/** Resolves with whether the program could be started and has not failed at once; it may go on running, as a browser does. */
export function openBrowser(url: URL, command: string, withinMs = 1_000): Promise<boolean> {
  const [program, ...args] = openerOf(command)
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), withinMs)
    const settle = (opened: boolean): void => {
      clearTimeout(timer)
      resolve(opened)
    }
    // Its own group: Ctrl-C ends this program and not the user's browser. Nothing of it goes to the output, which kubectl reads.
    const child = spawn(program, [...args, url.href], { stdio: 'ignore', detached: process.platform !== 'win32' })
    child.once('error', () => settle(false)).once('exit', (code) => settle(code === 0))
    child.unref()
  })
}
