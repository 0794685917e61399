// Events of API server calls, for metrics.

export interface KubeCallTarget {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** URL of the API server. */
  readonly server: string
}

/** Called synchronously; implementations return at once and never throw. */
export interface KubeCallEvents {
  /** An attempt has a response head, or has failed. @param code '<error>' = failed, as in client-go */
  answered(target: KubeCallTarget, code: string): void
  /** A call has its whole response, a watch its response head. @param answerBytes undefined = a watch */
  ended(target: KubeCallTarget, durationMs: number, requestBytes: number, answerBytes: number | undefined): void
  /** The call is retried because the server sent Retry-After. */
  resent(target: KubeCallTarget, code: number): void
}

/** For callers without metrics. */
export const NO_KUBE_CALL_EVENTS: KubeCallEvents = {
  answered: () => undefined,
  ended: () => undefined,
  resent: () => undefined,
}
