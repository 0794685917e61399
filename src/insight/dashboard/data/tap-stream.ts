// Reads the stream of /api/v1/tap line by line and reports a bounded number of the newest requests, a few times a second.

/** The displayed fields of a line; others are ignored, as are unknown types. */
export interface TapRow {
  readonly time: string
  readonly replica: string
  readonly auditID: string
  readonly cluster: string
  readonly user: string
  readonly userAgent: string
  readonly address: string
  readonly verb: string
  readonly method: string
  readonly apiGroup: string
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly path: string
  readonly query: string
  readonly code: number
  readonly refusal: string
  readonly refusedBy: string
  readonly totalMs: number
  readonly responseBytes: number
}

export interface TapState {
  readonly rows: readonly TapRow[]
  readonly shown: number
  readonly dropped: number
  readonly seen: number
  /** Why it ended; '' = still running. */
  readonly ended: string
}

export const NOTHING_TAPPED: TapState = { rows: [], shown: 0, dropped: 0, seen: 0, ended: '' }
const MAX_ROWS = 200
const TELL_MS = 250
/** Lines are shorter than this. */
const MAX_LINE = 64 * 1024

/** Resolves when the stream has ended. */
export async function readTap(url: string, signal: AbortSignal, tell: (state: TapState) => void): Promise<void> {
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
  readonly #tell: (state: TapState) => void
  readonly #seen = new Map<string, number>()
  #state = NOTHING_TAPPED
  #timer = 0

  constructor(tell: (state: TapState) => void) {
    this.#tell = tell
  }

  line(text: string): void {
    const value = parsed(text)
    const state = this.#state
    switch (value?.['type']) {
      case 'request':
        this.#state = {
          ...state,
          rows: [value as unknown as TapRow, ...state.rows].slice(0, MAX_ROWS),
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

  end(why: string): void {
    if (this.#state.ended === '') this.#state = { ...this.#state, ended: why }
    this.#show()
  }

  #show(): void {
    clearTimeout(this.#timer)
    this.#timer = 0
    this.#tell(this.#state)
  }
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
