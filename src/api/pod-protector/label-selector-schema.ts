// metav1.LabelSelector as a schema.

import { list, map, object, type Schema, text, textOf } from '../kube/json-schema.ts'
import type { LabelSelector, LabelSelectorRequirement } from './pod-protector.ts'

export function labelSelector(description: string): Schema<LabelSelector> {
  const requirement = object<LabelSelectorRequirement>(
    'A requirement of a label.',
    {
      key: text('The label.'),
      operator: textOf<LabelSelectorRequirement['operator']>(
        'How the label relates to values: In, NotIn, Exists or DoesNotExist.',
      ),
      values: {
        ...list('Values for In and NotIn, at least one; none for Exists and DoesNotExist.', text('A value.')),
        'x-kubernetes-list-type': 'atomic',
      },
    },
    ['key', 'operator'],
  )
  const selector = object<LabelSelector>(description, {
    matchLabels: map('Labels with the value that each has to have. All have to match.', text('The value.')),
    matchExpressions: {
      ...list('Requirements of labels. All have to match.', requirement),
      'x-kubernetes-list-type': 'atomic',
    },
  })
  return { ...selector, 'x-kubernetes-map-type': 'atomic' }
}
