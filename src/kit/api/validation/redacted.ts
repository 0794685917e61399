// Placeholders for values that must not be shown.

/** Replaces a hidden value; a write that contains it is refused (credential-checks.ts). */
export const REDACTED_TEXT = 'REDACTED'
/** The same in base64, so that it decodes wherever a client expects bytes. */
export const REDACTED_BASE64 = 'UkVEQUNURUQ='
