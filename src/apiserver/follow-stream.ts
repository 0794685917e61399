// A response that continues until the client leaves, such as a followed pod log.

import type { Stream } from '../kit/api/stream.ts'
import type { ConnectAnswer } from '../kube/api/resource-kind.ts'
import type { HttpAnswer } from './http/answer.ts'
import { MAX_WATCHER_BYTES } from './watch-stream.ts'

export interface FollowRequest {
  /** The head, and the initial content. */
  readonly begin: HttpAnswer
  readonly follow: NonNullable<ConnectAnswer['follow']>
}

const EMPTY = Buffer.alloc(0)

export class FollowStream {
  readonly #request: FollowRequest
  readonly #stream: Stream
  readonly #onEnd: () => void
  #stopSource: () => void = () => undefined
  #over = false

  /** @param onEnd called once, however it ends */
  constructor(request: FollowRequest, stream: Stream, onEnd: () => void) {
    this.#request = request
    this.#stream = stream
    this.#onEnd = onEnd
  }

  /** Call it when the response head was sent. */
  start(): void {
    this.#stream.body(this.#request.begin.body, false)
    const stop = this.#request.follow((text) => this.#write(text))
    if (this.#over) stop()
    else this.#stopSource = stop
  }

  finish(): void {
    if (this.#over) return
    this.#stop()
    this.#stream.body(EMPTY, true)
  }

  onDrained(): void {
    // Nothing waits here.
  }

  /** The client is gone. */
  onReset(): void {
    this.#stop()
  }

  #write(text: string): void {
    if (this.#over) return
    this.#stream.body(Buffer.from(text), false)
    if (this.#stream.queued <= MAX_WATCHER_BYTES) return
    this.#stop()
    this.#stream.reset('cancel')
  }

  #stop(): void {
    if (this.#over) return
    this.#over = true
    this.#stopSource()
    this.#onEnd()
  }
}
