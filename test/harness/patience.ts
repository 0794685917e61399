// For tests and hooks that may take longer than the two minutes after which others fail: a machine that is ten times too busy included.

export const PATIENT: { readonly timeout: number } = { timeout: 5 * 60_000 }
