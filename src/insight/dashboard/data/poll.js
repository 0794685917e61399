// One request every few seconds, which costs next to nothing while nothing has changed (ETag). A hidden tab asks nothing. When the gateway
// does not answer, what was known stays, with its age.
import { useEffect, useRef, useState } from 'preact/hooks'

const EVERY_MS = 3000
/** An answer that takes longer is none. */
const PATIENCE_MS = 8000
export function usePoll(url, everyMs = EVERY_MS) {
  const [polled, setPolled] = useState({ ...NOTHING, url })
  const poll = useRef(undefined)
  useEffect(() => {
    const current = new Poll(url, everyMs, (next) =>
      setPolled((before) => ({ ...next, url, data: next.data ?? (before.url === url ? before.data : undefined) })),
    )
    poll.current = current
    current.start()
    return () => current.stop()
  }, [url, everyMs])
  // What is shown is never of another address, but of the same list searched otherwise it may be: it flickers less.
  return polled.url === url || sameList(polled.url, url) ? polled : NOTHING
}
const NOTHING = { data: undefined, freshAt: 0, fault: '' }
function sameList(a, b) {
  return a.slice(0, `${a}?`.indexOf('?')) === b.slice(0, `${b}?`.indexOf('?')) && a.includes('?')
}
class Poll {
  #url
  #everyMs
  #tell
  #etag = ''
  #data
  #freshAt = 0
  #timer = 0
  #running
  #stopped = false
  #onVisible = () => {
    clearTimeout(this.#timer)
    if (document.hidden) this.#running?.abort()
    else void this.#ask()
  }
  constructor(url, everyMs, tell) {
    this.#url = url
    this.#everyMs = everyMs
    this.#tell = tell
  }
  start() {
    document.addEventListener('visibilitychange', this.#onVisible)
    if (!document.hidden) void this.#ask()
  }
  stop() {
    this.#stopped = true
    document.removeEventListener('visibilitychange', this.#onVisible)
    clearTimeout(this.#timer)
    this.#running?.abort()
  }
  async #ask() {
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
  /** Resolves with what is wrong. */
  async #fetch(signal) {
    const headers = { accept: 'application/json' }
    if (this.#etag !== '') headers['if-none-match'] = this.#etag
    const response = await fetch(this.#url, { headers, signal, cache: 'no-store', redirect: 'error' })
    if (response.status === 401) {
      // The session is over: the same address shows the login.
      location.reload()
      return 'Logged out'
    }
    if (response.status !== 304 && !response.ok) return await problemOf(response)
    if (response.status !== 304) {
      this.#data = await response.json()
      this.#etag = response.headers.get('etag') ?? ''
    }
    this.#freshAt = Date.now()
    return ''
  }
}
/** Without the full stop at its end, as all faults here. */
async function problemOf(response) {
  const text = (await response.text()).slice(0, 300).trim().replace(/\.$/, '')
  return text === '' || text.startsWith('{') ? `The gateway answers ${response.status}` : text
}
/** The time, once a second, for countdowns and ages. */
export function useNow() {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}
