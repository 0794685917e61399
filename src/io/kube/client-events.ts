// What clients of API servers tell of their calls, for metrics.

export interface KubeCallTarget {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** URL of the API server. */
  readonly server: string
}

/** Called synchronously: they return at once and never throw. */
export interface KubeCallEvents {
  /** One attempt has the head of an answer, or will have none. @param code '<error>' = none, as client-go says it */
  answered(target: KubeCallTarget, code: string): void
  /** A call has its whole answer, a watch the head of one. @param answerBytes undefined = of a watch */
  ended(target: KubeCallTarget, durationMs: number, requestBytes: number, answerBytes: number | undefined): void
  /** It is sent again, because the server said when. */
  resent(target: KubeCallTarget, code: number): void
}

/** For who needs no metrics. */
export const NO_KUBE_CALL_EVENTS: KubeCallEvents = {
  answered: () => undefined,
  ended: () => undefined,
  resent: () => undefined,
}
