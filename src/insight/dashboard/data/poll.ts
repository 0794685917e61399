// Polls every few seconds, at almost no cost while nothing changes (ETag). A hidden tab does not poll. If the gateway does not respond, the last data
// stays, with its age.

import { useEffect, useRef, useState } from 'preact/hooks'

export interface Polled<T> {
  /** undefined = no response yet. */
  readonly data: T | undefined
  /** Time of the last response, milliseconds since the epoch; 0 = never. */
  readonly freshAt: number
  /** Why the last request failed; '' = it did not. */
  readonly fault: string
}

const EVERY_MS = 3000
/** Timeout of a request. */
const PATIENCE_MS = 8000

export function usePoll<T>(url: string, everyMs: number = EVERY_MS): Polled<T> {
  const [polled, setPolled] = useState<Polled<T> & { readonly url: string }>({ ...NOTHING, url })
  const poll = useRef<Poll<T> | undefined>(undefined)
  useEffect(() => {
    const current = new Poll<T>(url, everyMs, (next) =>
      setPolled((before) => ({ ...next, url, data: next.data ?? (before.url === url ? before.data : undefined) })),
    )
    poll.current = current
    current.start()
    return () => current.stop()
  }, [url, everyMs])
  // Never shows data of another address, except for a different search of the same list: that flickers less.
  return polled.url === url || sameList(polled.url, url) ? polled : NOTHING
}

const NOTHING = { data: undefined, freshAt: 0, fault: '' } as const

function sameList(a: string, b: string): boolean {
  return a.slice(0, `${a}?`.indexOf('?')) === b.slice(0, `${b}?`.indexOf('?')) && a.includes('?')
}

class Poll<T> {
  readonly #url: string
  readonly #everyMs: number
  readonly #tell: (polled: Polled<T>) => void
  #etag = ''
  #data: T | undefined
  #freshAt = 0
  #timer = 0
  #running: AbortController | undefined
  #stopped = false
  readonly #onVisible = (): void => {
    clearTimeout(this.#timer)
    if (document.hidden) this.#running?.abort()
    else void this.#ask()
  }

  constructor(url: string, everyMs: number, tell: (polled: Polled<T>) => void) {
    this.#url = url
    this.#everyMs = everyMs
    this.#tell = tell
  }

  start(): void {
    document.addEventListener('visibilitychange', this.#onVisible)
    if (!document.hidden) void this.#ask()
  }

  stop(): void {
    this.#stopped = true
    document.removeEventListener('visibilitychange', this.#onVisible)
    clearTimeout(this.#timer)
    this.#running?.abort()
  }

  async #ask(): Promise<void> {
    const running = new AbortController()
    this.#running?.abort()
    this.#running = running
    const patience = setTimeout(() => running.abort(), PATIENCE_MS)
    const fault = await this.#fetch(running.signal).catch(() => 'The gateway does not answer')
    clearTimeout(patience)
    if (this.#stopped || this.#running !== running || document.hidden) return
    this.#tell({ data: this.#data, freshAt: this.#freshAt, fault })
    this.#timer = window.setTimeout(() => void this.#ask(), this.#everyMs)
  }

  /** Resolves with the fault. */
  async #fetch(signal: AbortSignal): Promise<string> {
    const headers: Record<string, string> = { accept: 'application/json' }
    if (this.#etag !== '') headers['if-none-match'] = this.#etag
    const response = await fetch(this.#url, { headers, signal, cache: 'no-store', redirect: 'error' })
    if (response.status === 401) {
      // The session has expired: the same address shows the login.
      location.reload()
      return 'Logged out'
    }
    if (response.status !== 304 && !response.ok) return await problemOf(response)
    if (response.status !== 304) {
      this.#data = (await response.json()) as T
      this.#etag = response.headers.get('etag') ?? ''
    }
    this.#freshAt = Date.now()
    return ''
  }
}

/** Without the trailing full stop, like all faults here. */
async function problemOf(response: Response): Promise<string> {
  const text = (await response.text()).slice(0, 300).trim().replace(/\.$/, '')
  return text === '' || text.startsWith('{') ? `The gateway answers ${response.status}` : text
}

/** The current time, updated every second, for countdowns and ages. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}
