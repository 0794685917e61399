// metav1.LabelSelector as a schema.

import { atomic, list, map, object, text, typedText, type ValueOf } from '../json/json-schema.ts'

/** metav1.LabelSelector. An empty one selects everything. */
export type LabelSelector = ValueOf<ReturnType<typeof labelSelector>>
export type LabelSelectorRequirement = NonNullable<LabelSelector['matchExpressions']>[number]

export function labelSelector(description: string) {
  const requirement = object(
    'A requirement of a label.',
    {
      key: text('The label.'),
      operator: typedText<'In' | 'NotIn' | 'Exists' | 'DoesNotExist'>(
        'How the label relates to values: In, NotIn, Exists or DoesNotExist.',
      ),
      values: atomic(
        list('Values for In and NotIn, at least one; none for Exists and DoesNotExist.', text('A value.')),
      ),
    },
    ['key', 'operator'],
  )
  const selector = object(description, {
    matchLabels: map('Labels and the value that each must have. All must match.', text('The value.')),
    matchExpressions: atomic(list('Requirements for labels. All must match.', requirement)),
  })
  return atomic(selector)
}
