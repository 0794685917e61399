// An error in a field of an object: the one type of all checks (k8s.io/apimachinery/pkg/util/validation/field/errors.go).

/** What kind of error it is: the reason of its cause in a 422, for programs. */
export type FieldErrorReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'

/** An error in a field, or a warning about one. */
export interface FieldError {
  readonly reason: FieldErrorReason
  /** `spec.servers[0].endpoint`; '' = the whole object. */
  readonly path: string
  readonly message: string
  /** What to do about it; '' where the message says it. */
  readonly fix: string
  /** An object with an error is not accepted; one with warnings is. */
  readonly severity: 'error' | 'warning'
}
