// An error in a field of an object: the type used by all checks (k8s.io/apimachinery/pkg/util/validation/field/errors.go).

/** Kind of error: the reason of its cause in a 422, for programs. */
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
  /** How to fix it; '' where the message says so. */
  readonly fix: string
  /** Errors reject the object; warnings do not. */
  readonly severity: 'error' | 'warning'
}
