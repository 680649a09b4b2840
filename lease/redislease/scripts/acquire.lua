-- ARGV: holder, token, value, TTL in microseconds, retention in milliseconds, channel, key without prefix.
local before, why = entry()
if before and before.token == ARGV[2] then
  -- A repeated request: the client did not receive the answer and sent it again. The entry that was replaced is in the before fields.
  local reply = add({'granted', text(now)}, before)
  for _, name in ipairs(before_names) do
    local value = redis.call('HGET', key, name)
    if not value then break end
    reply[#reply + 1] = value
  end
  return reply
end
if before and held(before) then
  return add({'held', text(now)}, before)
end
if why then redis.call('DEL', key) end
forget()
local e = {revision = before and before.revision or 0}
put(e, {holder = ARGV[1], token = ARGV[2], value = ARGV[3], acquired = now, renewed = now,
  expires = now + tonumber(ARGV[4]), retention = tonumber(ARGV[5]), resigned = 0})
local reply = add({'granted', text(now)}, e)
if before then
  add(reply, before)
  local fields = {}
  for i, name in ipairs(before_names) do
    fields[#fields + 1] = name
    fields[#fields + 1] = reply[#reply - #names + i]
  end
  redis.call('HSET', key, unpack(fields))
end
notify(ARGV[6], ARGV[7])
return reply
