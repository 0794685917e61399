import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type JsonObject, nameOf } from '../../../kit/api/json/json-object.ts'
import { textOf } from '../../../kit/api/json/object-shape.ts'
import { PODS } from '../../api/kinds/foreign-kinds.ts'
import type { FollowEvents } from '../../api/object-client.ts'
import { Informer, type InformerOptions } from './informer.ts'

function informerOf<T>(options: Omit<InformerOptions<T>, 'client' | 'kind'>): Informer<T> {
  const client = {
    follow: (_kind: unknown, _namespace: string, _events: FollowEvents) => ({ stop: async () => undefined }),
  }
  return new Informer({ client, kind: PODS, ...options })
}

function pod(name: string, uid: string, text: string): JsonObject {
  return { metadata: { namespace: 'default', name, uid }, text }
}

test('an object that was deleted and created again while the watch was down is another one', () => {
  const gone: string[] = []
  const befores: (string | undefined)[] = []
  const informer = informerOf<string>({
    keep: (object, before) => {
      befores.push(before)
      return textOf(object['text'])
    },
    onGone: (kept, key) => void gone.push(`${key} ${kept}`),
  })
  informer.onReplace([pod('a', '1', 'first')])
  informer.onChange('MODIFIED', pod('a', '1', 'second'))
  informer.onReplace([pod('a', '2', 'third')])
  assert.deepEqual([befores, gone], [[undefined, 'first', undefined], ['default/a second']])
  assert.deepEqual([...informer.objects], [['default/a', 'third']])
})

test('what is told of a change: not where the same is kept, and whether it is current as it was before', () => {
  let changes = 0
  const states: boolean[] = []
  const informer: Informer<string> = informerOf<string>({
    keep: (object) => textOf(object['text']) || undefined,
    onChange: () => void changes++,
    onState: () => void states.push(informer.current),
  })
  assert.equal(informer.listed, false)
  informer.onReplace([])
  informer.onState(true, '')
  informer.onChange('ADDED', pod('a', '1', ''))
  informer.onChange('DELETED', pod('b', '1', ''))
  assert.deepEqual([changes, informer.listed, informer.current], [1, true, true])
  for (const text of ['x', 'x', 'y', '']) informer.onChange('MODIFIED', pod('a', '1', text))
  informer.onState(false, 'away')
  assert.deepEqual([changes, states, informer.message, informer.objects.size], [4, [false, true], 'away', 0])
})

test('what is kept is what the API server has, after any lists and events, and each thing kept goes once', () => {
  const object = fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    uid: fc.constantFrom('1', '2'),
    text: fc.constantFrom('', 'x', 'y'),
  })
  const list = fc.uniqueArray(object, { selector: ({ name }) => name })
  const event = fc.record({ type: fc.constantFrom('MODIFIED' as const, 'DELETED' as const), object })
  fc.assert(
    fc.property(fc.array(fc.oneof(list, event)), (said) => {
      const model = new Map<string, JsonObject>()
      let kept = 0
      const informer = informerOf<{ readonly text: string }>({
        keep: (object, before) => {
          const text = textOf(object['text'])
          if (text !== '' && before === undefined) kept++
          return text === '' ? undefined : { text }
        },
        onGone: () => void kept--,
      })
      for (const one of said) {
        if (Array.isArray(one)) {
          const objects = one.map(({ name, uid, text }) => pod(name, uid, text))
          model.clear()
          for (const object of objects) model.set(nameOf(object), object)
          informer.onReplace(objects)
        } else {
          const { name, uid, text } = one.object
          if (one.type === 'DELETED') model.delete(name)
          else model.set(name, pod(name, uid, text))
          informer.onChange(one.type, pod(name, uid, text))
        }
        const wanted = [...model]
          .map(([name, { text }]) => [`default/${name}`, textOf(text)])
          .filter(([, text]) => text !== '')
        const found = [...informer.objects].map(([key, { text }]) => [key, text])
        assert.deepEqual(Object.fromEntries(found), Object.fromEntries(wanted))
        assert.equal(informer.objects.size, kept)
      }
    }),
  )
})
