import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { AuditEntrySchema } from '../gen/signalbox/v1/audit_pb'
import { exportPath, subjectKind } from './entry'

const id = '01a21ed7-0000-4000-8000-00000000431e'
const kind = (action: string, subject: string, project = 'shop') =>
  subjectKind(create(AuditEntrySchema, { action, subject, project }))

describe('the subject of an entry', () => {
  it.each([
    ['run.cancel', id, 'run'],
    ['quota.resume', id, 'run'],
    ['batch.pause', id, 'batch'],
    ['workflow.publish', 'shop/order', 'workflow'],
    ['workflow.stop', 'shop/order', 'workflow'],
    ['webhook.create', 'audit', 'webhook'],
    ['webhook.redeliver', 'msg_0a1b', ''],
    ['token.revoke', 'tok_1', ''],
    ['run.cancel', `${id}0`, ''],
    ['run.start', '', ''],
  ])('of %s, %j, is shown as %j', (action, subject, expected) => {
    expect(kind(action, subject)).toBe(expected)
  })

  it('has no page where the entry is of no project', () => {
    expect(kind('run.cancel', id, '')).toBe('')
    expect(kind('workflow.publish', 'shop/order', '')).toBe('')
  })
})

describe('the export of the log', () => {
  const none = { action: '', actor: '', subject: '' }

  it('is of the whole log without filters', () => {
    expect(exportPath('a b', 'csv', none, undefined)).toBe('/v1/projects/a%20b/audit:export?format=csv')
  })

  it('has the filters of the page, and the beginning of its period', () => {
    expect(
      exportPath('shop', 'json', { action: 'run.cancel', actor: 'a&b', subject: '' }, Date.UTC(2026, 0, 31, 12)),
    ).toBe(
      '/v1/projects/shop/audit:export?format=json&action=run.cancel&actor=a%26b&since=2026-01-31T12%3A00%3A00.000Z',
    )
  })
})
