// What a client is told of an answer that has other names than the client knows.

export interface AnswerChange {
  /** A longer answer is not read. */
  readonly maxBytes: number
  /** @returns undefined = it cannot be read */
  change(code: number, contentType: string, body: Buffer): Buffer | undefined
  /** What is told in the place of a longer one, in JSON. @returns undefined = there is nothing that says as much */
  instead(code: number): Buffer | undefined
}
