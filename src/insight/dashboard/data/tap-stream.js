// The stream of /api/v1/tap, line by line. Its reader sees a bounded number of the newest requests, a few times a second.
export const NOTHING_TAPPED = { rows: [], shown: 0, dropped: 0, seen: 0, ended: '' }
const MAX_ROWS = 200
const TELL_MS = 250
/** A line is shorter. */
const MAX_LINE = 64 * 1024
/** Resolves when it has ended. */
export async function readTap(url, signal, tell) {
  const tap = new Tap(tell)
  try {
    const response = await fetch(url, { signal, cache: 'no-store', redirect: 'error' })
    if (response.status === 401) location.reload()
    if (!response.ok || response.body === null) {
      tap.end((await response.text()).slice(0, 400) || `The gateway answers ${response.status}`)
      return
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const lines = (text + chunk.value).split('\n')
      text = lines.pop() ?? ''
      if (text.length > MAX_LINE) text = ''
      for (const line of lines) tap.line(line)
    }
    tap.end('The stream has ended.')
  } catch {
    tap.end(signal.aborted ? 'Stopped.' : 'The gateway does not answer.')
  }
}
class Tap {
  #tell
  #seen = new Map()
  #state = NOTHING_TAPPED
  #timer = 0
  constructor(tell) {
    this.#tell = tell
  }
  line(text) {
    const value = parsed(text)
    const state = this.#state
    switch (value?.['type']) {
      case 'request':
        this.#state = {
          ...state,
          rows: [value, ...state.rows].slice(0, MAX_ROWS),
          shown: state.shown + 1,
        }
        break
      case 'dropped':
        this.#state = { ...state, dropped: state.dropped + Number(value['count']) }
        break
      case 'progress':
        this.#seen.set(String(value['replica']), Number(value['seen']))
        this.#state = { ...state, seen: [...this.#seen.values()].reduce((sum, one) => sum + one, 0) }
        break
      case 'end':
        this.#state = { ...state, ended: `The gateway has ended it: ${String(value['reason'])}.` }
        break
      default:
        return
    }
    this.#timer ||= setTimeout(() => this.#show(), TELL_MS)
  }
  end(why) {
    if (this.#state.ended === '') this.#state = { ...this.#state, ended: why }
    this.#show()
  }
  #show() {
    clearTimeout(this.#timer)
    this.#timer = 0
    this.#tell(this.#state)
  }
}
function parsed(line) {
  try {
    const value = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
