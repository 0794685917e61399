// The content of an Event.

export interface StatusTransition {
  readonly type: 'Normal' | 'Warning'
  /** CamelCase: Applied, Invalid, EndpointsUnhealthy, ... */
  readonly reason: string
  readonly message: string
}
