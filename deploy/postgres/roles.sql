-- The two roles of Signalbox in its database. Run it once, connected to that database, as its owner or a superuser; then give both roles
-- a password (\password signalbox_owner). It can be repeated.
--
--   signalbox_owner   owns the tables: runs `signalbox migrate up` and grants.sql. No server uses it.
--   signalbox         serves: every server, with store.auto_migrate=false. grants.sql gives it rights on the tables.
--
-- docs/least-privilege.md has the order of the steps, and the errors when a right is missing.
DO $$
DECLARE
    role TEXT;
BEGIN
    FOREACH role IN ARRAY ARRAY['signalbox_owner', 'signalbox'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    -- Without this every role of the server may connect, and create temporary tables.
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
END
$$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO signalbox_owner;
GRANT USAGE ON SCHEMA public TO signalbox;
