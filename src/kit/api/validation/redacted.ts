// What a value reads as where it may not be shown.

/** What stands in the place of a hidden value; no write may bring it back (credential-checks.ts). */
export const REDACTED_TEXT = 'REDACTED'
/** The same as base64, so that it decodes wherever a client expects bytes. */
export const REDACTED = 'UkVEQUNURUQ='
