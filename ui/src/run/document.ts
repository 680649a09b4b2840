import { type DescField, type DescMessage, ScalarType, toJson } from '@bufbuild/protobuf'
import { isObject, type Json, JsonNumber, readJson } from '../api/json'
import { type Run, RunSchema } from '../gen/signalbox/v1/run_pb'
import { JsonValueSchema } from '../gen/signalbox/v1/types_pb'

const large = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64])

/** runDocument returns a run as REST returns it: payloads inline with every digit, and 64-bit numbers as numbers. */
export const runDocument = (run: Run): Json => message(readJson(JSON.stringify(toJson(RunSchema, run))), RunSchema)

/** message converts the JSON of protobuf of a message to that of REST. */
function message(value: Json, type: DescMessage): Json {
  // Messages of the standard types, such as times, are no objects.
  if (!isObject(value)) return value
  if (type.typeName === JsonValueSchema.typeName) return payload(value.get('json'))
  const fields = new Map(type.fields.map((field) => [field.jsonName, field]))
  return new Map([...value].map(([name, part]) => [name, member(part, fields.get(name))]))
}

function member(value: Json, field: DescField | undefined): Json {
  if (field === undefined) return value
  const one = (part: Json): Json => {
    if (field.message !== undefined) return message(part, field.message)
    return field.scalar !== undefined && large.has(field.scalar) && typeof part === 'string'
      ? new JsonNumber(part)
      : part
  }
  if (field.fieldKind === 'list' && Array.isArray(value)) return value.map(one)
  if (field.fieldKind === 'map' && isObject(value)) return new Map([...value].map(([key, part]) => [key, one(part)]))
  return one(value)
}

/** payload returns the value of a text of JSON; a text that cannot be read stays one. */
function payload(text: Json | undefined): Json {
  if (typeof text !== 'string') return text ?? null
  try {
    return readJson(text)
  } catch {
    return text
  }
}
