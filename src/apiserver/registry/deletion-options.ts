// DeleteOptions: from the body or, without one, from the query (endpoints/handlers/delete.go).

import type { FieldError } from '../../kit/api/json/field-error.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import { invalid, statusError } from '../../kube/api/status.ts'
import { invalidValue, notSupported } from '../../kube/core/objects/field-error.ts'
import type { Query } from '../http/query.ts'
import { dryRunErrors } from '../http/query-options.ts'
import { decodeSmallBody } from '../http/read-body.ts'
import type { PropagationPolicy } from './finalizers.ts'

export interface DeleteOptions {
  readonly dryRun: boolean
  readonly propagationPolicy: PropagationPolicy | undefined
  /** Preconditions. */
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
  /** undefined = the object's own. Ignored for kinds that are removed at once. */
  readonly gracePeriodSeconds: number | undefined
}

export const DELETE_NOW: DeleteOptions = {
  dryRun: false,
  propagationPolicy: undefined,
  uid: undefined,
  resourceVersion: undefined,
  gracePeriodSeconds: 0,
}

const POLICIES: readonly string[] = ['Foreground', 'Background', 'Orphan']

/** @throws {StatusError} 400 for malformed options, 422 for invalid ones */
export function readDeleteOptions(query: Query, body: string, format: 'json' | 'yaml'): DeleteOptions {
  return body.trim() === '' ? optionsOf(queryOptions(query)) : optionsOf(bodyOptions(body, format))
}

interface Given {
  readonly dryRun: readonly string[]
  readonly orphanDependents: boolean | undefined
  readonly propagationPolicy: string | undefined
  readonly uid: string | undefined
  readonly resourceVersion: string | undefined
  readonly gracePeriodSeconds: number | undefined
}

function queryOptions(query: Query): Given {
  return {
    gracePeriodSeconds: query.integer('gracePeriodSeconds'),
    dryRun: query.all('dryRun'),
    orphanDependents: query.bool('orphanDependents'),
    propagationPolicy: query.has('propagationPolicy') ? query.text('propagationPolicy') : undefined,
    uid: undefined,
    resourceVersion: undefined,
  }
}

function bodyOptions(body: string, format: 'json' | 'yaml'): Given {
  const options = decodeSmallBody(body, format)
  const kind = options['kind'] ?? 'DeleteOptions'
  if (kind !== 'DeleteOptions') {
    const version = JSON.stringify(options['apiVersion'] ?? 'meta.k8s.io/v1')
    throw statusError('BadRequest', `no kind ${JSON.stringify(kind)} is registered for version ${version}`)
  }
  const preconditions = member(options, 'preconditions', isRecord, 'v1.Preconditions') ?? {}
  return {
    gracePeriodSeconds: member(options, 'gracePeriodSeconds', isInteger, 'int64'),
    dryRun: member(options, 'dryRun', isTexts, '[]string') ?? [],
    orphanDependents: member(options, 'orphanDependents', isFlag, 'bool'),
    propagationPolicy: member(options, 'propagationPolicy', isText, 'v1.DeletionPropagation'),
    uid: member(preconditions, 'uid', isText, 'types.UID'),
    resourceVersion: member(preconditions, 'resourceVersion', isText, 'string'),
  }
}

function member<T>(
  options: JsonObject,
  name: string,
  isRight: (value: unknown) => value is T,
  type: string,
): T | undefined {
  const value = Object.hasOwn(options, name) ? options[name] : undefined
  if (value === undefined || value === null) return undefined
  if (isRight(value)) return value
  const given = Array.isArray(value) ? 'array' : typeof value
  const message = `json: cannot unmarshal ${given} into Go struct field DeleteOptions.${name} of type ${type}`
  throw statusError('BadRequest', message)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value)
}

function isFlag(value: unknown): value is boolean {
  return typeof value === 'boolean'
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText)
}

function optionsOf(given: Given): DeleteOptions {
  const { dryRun, orphanDependents, propagationPolicy, uid, resourceVersion, gracePeriodSeconds } = given
  const errors: FieldError[] = []
  if (orphanDependents !== undefined && propagationPolicy !== undefined) {
    const detail = 'orphanDependents and deletionPropagation cannot be both set'
    errors.push(invalidValue('propagationPolicy', propagationPolicy, detail))
  }
  if (propagationPolicy !== undefined && !isPolicy(propagationPolicy)) {
    errors.push(notSupported('propagationPolicy', propagationPolicy, [...POLICIES, 'nil']))
  }
  errors.push(...dryRunErrors(dryRun))
  if (errors.length > 0) throw invalid('meta.k8s.io', 'DeleteOptions', '', errors)
  const policy = propagationPolicy !== undefined && isPolicy(propagationPolicy) ? propagationPolicy : undefined
  return {
    dryRun: dryRun.length > 0,
    propagationPolicy: policy ?? (orphanDependents === true ? 'Orphan' : undefined),
    uid,
    resourceVersion,
    gracePeriodSeconds,
  }
}

function isPolicy(text: string): text is PropagationPolicy {
  return POLICIES.includes(text)
}
