// What requests are grouped by in the report of top talkers; settings say which of it becomes metrics.

export const DIMENSIONS = ['user', 'userAgent', 'resource', 'verb', 'namespace', 'address', 'cluster'] as const

export type Dimension = (typeof DIMENSIONS)[number]

export function isDimension(text: string): text is Dimension {
  return DIMENSIONS.some((one) => one === text)
}
