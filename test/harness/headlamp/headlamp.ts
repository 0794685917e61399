// A page of Headlamp in a real Chromium, with `kubectl proxy` as its backend: what it shows of a federated cluster, by lists and by watches over WebSocket.

import type { Browser, Page, WebSocket } from 'playwright-core'
import { launchChromium } from '../../dashboard/browser.ts'
import type { SeenByReader } from '../federation/readers.ts'
import { type RunningKubectl, startKubectl } from '../kubectl/kubectl.ts'
import { waitFor } from '../wait.ts'
import { headlampPage } from './build.ts'

export const SHOWN_BY_HEADLAMP: readonly string[] = ['v1/pods', 'apps/v1/deployments', 'v1/services', 'v1/nodes']
const FOREVER_MS = 2 ** 31 - 1
const LOAD_MS = 60_000

interface Shown {
  /** null = not listed yet */
  readonly rows: readonly (readonly [string, string])[] | null
  readonly error: string
}

export class Headlamp {
  readonly #backend: RunningKubectl
  readonly #browser: Browser
  readonly #page: Page
  readonly #url: string
  readonly #counts = new Map<string, number>()
  readonly #problems: string[] = []

  private constructor(backend: RunningKubectl, browser: Browser, page: Page, url: string) {
    this.#backend = backend
    this.#browser = browser
    this.#page = page
    this.#url = url
    page.on('websocket', (socket) => this.#listen(socket))
    page.on('pageerror', (error) => this.#problems.push(`headlamp: ${error.message}`))
  }

  static async start(kubeconfig: string): Promise<Headlamp> {
    const flags = ['--port=0', '--append-server-path', '--api-prefix=/clusters/all/', '--www-prefix=/']
    const args = ['proxy', ...flags, `--www=${await headlampPage()}`]
    const backend = await startKubectl(args, { kubeconfig, timeoutMs: FOREVER_MS })
    const [, address = ''] = await backend.output(/Starting to serve on (\S+)/)
    const browser = await launchChromium()
    return new Headlamp(backend, browser, await browser.newPage(), `http://${address}/`)
  }

  /** As a user who comes to the page, or loads it again: Headlamp opens no watch again that has ended. */
  async open(): Promise<void> {
    this.#count('opened')
    await this.#page.goto(this.#url)
    await waitFor(
      'the lists of Headlamp',
      async () => {
        const shown = await this.#shown()
        return SHOWN_BY_HEADLAMP.every((resource) => shown[resource]?.rows != null || shown[resource]?.error)
      },
      { timeoutMs: LOAD_MS },
    )
  }

  async report(): Promise<readonly SeenByReader[]> {
    const shown = await this.#shown()
    const counts = Object.fromEntries(this.#counts)
    return SHOWN_BY_HEADLAMP.map((resource, at) => {
      const rows = shown[resource]?.rows ?? []
      const store = Object.fromEntries(rows)
      if (Object.keys(store).length < rows.length) this.#problems.push(`headlamp: a row of ${resource} is there twice`)
      return {
        reader: 'headlamp',
        resource,
        store,
        problems: at === 0 ? this.#problems : [],
        versions: [],
        fallen: [],
        counts: at === 0 ? counts : {},
      }
    })
  }

  async kill(): Promise<void> {
    await this.#browser.close()
    await this.#backend.stop('SIGKILL')
  }

  async #shown(): Promise<Readonly<Record<string, Shown>>> {
    return await this.#page.evaluate<Readonly<Record<string, Shown>>>('window.shown ?? {}')
  }

  #listen(socket: WebSocket): void {
    this.#count('watches over WebSocket')
    socket.on('framereceived', ({ payload }) => this.#count(typeOf(String(payload))))
    socket.on('socketerror', () => this.#count('broken watches'))
  }

  #count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }
}

function typeOf(message: string): string {
  return /^\{"type":"([A-Z]+)"/.exec(message)?.[1] ?? 'messages that are no event'
}
