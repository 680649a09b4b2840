-- ARGV: token, whether there is a new value (1 or 0), value, TTL in microseconds, retention in milliseconds.
local e = entry()
if not e or e.token ~= ARGV[1] or not held(e) then return {'lost'} end
local changed = {renewed = now, expires = now + tonumber(ARGV[4]), retention = tonumber(ARGV[5])}
if ARGV[2] == '1' then changed.value = ARGV[3] end
-- A holder that renews has received the answer to its acquisition.
forget()
put(e, changed)
return add({'renewed', text(now)}, e)
